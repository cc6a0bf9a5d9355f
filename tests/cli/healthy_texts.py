# ruff: noqa: E501 - texts as programs print them, tables included
"""Texts of jobs that run well: what rules could take for a fault, and must not."""

TEXTS = {
    "hf.log": """\
loading configuration file config.json
loading weights file model.safetensors
Some weights of LlamaForSequenceClassification were not initialized from the model checkpoint and are newly initialized: ['score.weight']
***** Running training *****
  Num examples = 52,002
  Num Epochs = 3
  Instantaneous batch size per device = 8
  Total train batch size (w. parallel, distributed & accumulation) = 128
  Gradient Accumulation steps = 16
  Total optimization steps = 1,218
  Number of trainable parameters = 6,738,415,616
{'loss': 1.2034, 'grad_norm': 0.71, 'learning_rate': 2e-05, 'epoch': 0.02}
{'loss': 1.1022, 'grad_norm': 0.69, 'learning_rate': 1.9e-05, 'epoch': 0.04}
{'eval_loss': 1.05, 'eval_runtime': 42.1, 'eval_samples_per_second': 23.7, 'epoch': 1.0}
Saving model checkpoint to out/checkpoint-500
Training completed. Do not forget to share your model on huggingface.co/models =)
{'train_runtime': 5321.2, 'train_samples_per_second': 29.3, 'train_loss': 1.01, 'epoch': 3.0}
""",
    "nccl.log": """\
[rank0]: NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>
node1:311:311 [0] NCCL INFO cudaDriverVersion 12040
node1:311:311 [0] NCCL INFO NCCL version 2.21.5+cuda12.4
node1:311:400 [0] NCCL INFO Channel 00/24 :    0   1   2   3   4   5   6   7
node1:311:400 [0] NCCL INFO Connected all rings
node1:311:400 [0] NCCL INFO P2P Chunksize set to 524288
node1:311:400 [0] NCCL INFO comm 0x55 rank 0 nranks 8 cudaDev 0 busId 1b000 - Init COMPLETE
[rank0]: step 10 loss 2.3
[rank1]: step 10 loss 2.3
""",
    "vllm.log": """\
INFO 03-01 10:00:00 [config.py:721] This model supports multiple tasks: {'generate'}. Defaulting to 'generate'.
INFO 03-01 10:00:12 [gpu_model_runner.py:1329] Starting to load model meta-llama/Llama-3.1-8B-Instruct...
INFO 03-01 10:00:30 [gpu_model_runner.py:1347] Model loading took 14.99 GiB and 17.2 seconds
INFO 03-01 10:00:44 [kv_cache_utils.py:634] GPU KV cache size: 424,320 tokens
INFO 03-01 10:00:44 [kv_cache_utils.py:637] Maximum concurrency for 8,192 tokens per request: 51.80x
INFO 03-01 10:01:10 [gpu_model_runner.py:1697] Graph capturing finished in 22 secs, took 0.52 GiB
INFO:     Application startup complete.
INFO 03-01 10:02:00 [loggers.py:111] Engine 000: Avg prompt throughput: 1203.1 tokens/s, Avg generation throughput: 2034.0 tokens/s, Running: 32 reqs, Waiting: 0 reqs, GPU KV cache usage: 21.4%, Prefix cache hit rate: 12.0%
""",
    "sglang.log": """\
[2025-03-01 10:00:00 TP0] Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=63.2 GB
[2025-03-01 10:00:02 TP0] Memory pool end. avail mem=9.1 GB
[2025-03-01 10:00:10 TP0] max_total_num_tokens=412000, max_prefill_tokens=16384, max_running_requests=2048, context_len=8192
[2025-03-01 10:01:00 TP0] Decode batch. #running-req: 31, #token: 31022, token usage: 0.08, gen throughput (token/s): 1834.2, #queue-req: 0
""",
    "llama.log": """\
llm_load_tensors: offloading 32 repeating layers to GPU
llm_load_tensors: offloaded 33/33 layers to GPU
llama_print_timings:        eval time =    5120.11 ms /   400 runs   (   12.80 ms per token,    78.12 tokens per second)
n_gpu_layers = 99
""",
    "compile.log": """\
torch.compile enabled, mode=max-autotune
AUTOTUNE mm(4096x4096, 4096x4096)
  triton_mm_4 0.1402 ms 100.0%
  mm 0.1405 ms 99.8%
SingleProcess AUTOTUNE benchmarking takes 1.2 seconds
step 1 12.3s (compilation)
step 2 0.21s
step 3 0.21s
""",
    "pytest.log": """\
============================= test session starts ==============================
collected 41 items
tests/test_oom.py::test_oom_is_caught PASSED
tests/test_memory.py::test_out_of_memory_message PASSED
tests/test_xid.py::test_xid_79_is_parsed PASSED
============================== 41 passed in 3.21s ==============================
""",
    "advice.log": """\
Tip: if you run out of memory, reduce the batch size or enable gradient checkpointing.
Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.
OOM errors: 0
epoch 1/3: 100%|##########| 500/500 [02:10<00:00, 3.84it/s, loss=0.41]
epoch 2/3: 100%|##########| 500/500 [02:09<00:00, 3.86it/s, loss=0.33]
""",
    "dataloader.log": """\
DataLoader: num_workers=8 pin_memory=True prefetch_factor=4
[step 100] data_time 0.002s step_time 0.412s
[step 200] data_time 0.001s step_time 0.409s
[step 300] data_time 0.002s step_time 0.411s
""",
    "mem.log": """\
step 100: allocated 41.2 GiB, reserved 44.0 GiB, peak 42.9 GiB
step 200: allocated 41.2 GiB, reserved 44.0 GiB, peak 42.9 GiB
step 300: allocated 41.2 GiB, reserved 44.0 GiB, peak 42.9 GiB
""",
    "slurm.log": """\
srun: job 12345 queued and waiting for resources
srun: job 12345 has been allocated resources
0: initializing process group backend=nccl world_size=16
1: initializing process group backend=nccl world_size=16
0: epoch 0 done in 312 s
0: saving checkpoint to /scratch/ckpt_0.pt
0: done
""",
    "deepspeed.log": """\
[2025-03-01 12:00:00,100] [INFO] [logging.py:96:log_dist] [Rank 0] DeepSpeed info: version=0.14.4
[2025-03-01 12:00:10,100] [INFO] [stage_1_and_2.py:148:__init__] Reduce bucket size 500000000
[2025-03-01 12:00:11,100] [INFO] [utils.py:781:see_memory_usage] MA 12.58 GB Max_MA 14.6 GB CA 14.7 GB Max_CA 15 GB
[2025-03-01 12:00:20,100] [INFO] [loss_scaler.py:190:update_scale] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768
[2025-03-01 12:01:20,100] [INFO] [logging.py:96:log_dist] [Rank 0] step=100, skipped=1, lr=[1e-05], mom=[(0.9, 0.999)]
""",
    "jax.log": """\
I0301 12:00:00.000000 1 xla_bridge.py:863] Unable to initialize backend 'tpu': INTERNAL: Failed to open libtpu.so
I0301 12:00:01.000000 1 train.py:50] devices: [CudaDevice(id=0), CudaDevice(id=1)]
I0301 12:00:30.000000 1 train.py:88] step 100 loss 2.13 steps/s 4.1
""",
    "tf.log": """\
2025-03-01 12:00:00.000000: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1928] Created device /job:localhost/replica:0/task:0/device:GPU:0 with 22000 MB memory:  -> device: 0, name: NVIDIA A10G, pci bus id: 0000:00:1e.0, compute capability: 8.6
Epoch 1/5
100/100 [==============================] - 4s 35ms/step - loss: 0.3 - accuracy: 0.9
""",
    "dmesg.txt": """\
[    0.000000] Linux version 6.5.0-28-generic (buildd@lcy02)
[    4.123456] nvidia: loading out-of-tree module taints kernel.
[    4.223456] nvidia-nvlink: Nvlink Core is being initialized, major device number 510
[    4.323456] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024
[    5.000000] nvidia-uvm: Loaded the UVM driver, major device number 508.
[   12.300000] EXT4-fs (nvme0n1p2): mounted filesystem with ordered data mode. Quota mode: none.
[  120.400000] docker0: port 1(veth12) entered forwarding state
""",
    "smi.txt": """\
Sat Mar  1 12:00:00 2025
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA A100-SXM4-80GB          On  |   00000000:07:00.0 Off |                    0 |
| N/A   61C    P0             340W / 400W |   61234MiB /  81920MiB |     98%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA A100-SXM4-80GB          On  |   00000000:0F:00.0 Off |                    0 |
| N/A   58C    P0             331W / 400W |   61110MiB /  81920MiB |     97%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+

+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|
|    0   N/A  N/A      4242      C   python                                      61224MiB |
|    1   N/A  N/A      4243      C   python                                      61100MiB |
+-----------------------------------------------------------------------------------------+
""",
    "smi.csv": """\
index, name, memory.used [MiB], memory.total [MiB], utilization.gpu [%], temperature.gpu, power.draw [W], clocks.sm [MHz], pcie.link.gen.current, pcie.link.gen.max
0, NVIDIA H100 80GB HBM3, 70123 MiB, 81559 MiB, 99 %, 64, 655.20 W, 1755 MHz, 5, 5
1, NVIDIA H100 80GB HBM3, 70110 MiB, 81559 MiB, 99 %, 63, 648.90 W, 1770 MHz, 5, 5
""",
    "smi_l.txt": """\
GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1d2f3a4b-0000-0000-0000-000000000000)
GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-1d2f3a4b-0000-0000-0000-000000000001)
""",
    "table_gpu.txt": """\
------------------------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------
                          Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg     Self CUDA   Self CUDA %    CUDA total  CUDA time avg    # of Calls
------------------------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------
                      aten::mm         5.00%      50.000ms         8.00%      80.000ms      80.000us     600.000ms        60.00%     600.000ms     600.000us          1000
aten::_flash_attention_forward         1.00%      10.000ms         2.00%      20.000ms     200.000us     200.000ms        20.00%     200.000ms       2.000ms           100
       aten::native_layer_norm         1.00%      10.000ms         2.00%      20.000ms     100.000us      50.000ms         5.00%      50.000ms     250.000us           200
              cudaLaunchKernel        10.00%     100.000ms        10.00%     100.000ms      20.000us       0.000us         0.00%       0.000us       0.000us          5000
         cudaDeviceSynchronize        70.00%     700.000ms        70.00%     700.000ms     700.000ms       0.000us         0.00%       0.000us       0.000us             1
------------------------------
Self CPU time total: 1.000s
Self CUDA time total: 1.000s
""",
    "table_cpu.txt": """\
------------------------------  ------------  ------------  ------------  ------------  ------------  ------------
                          Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg    # of Calls
------------------------------  ------------  ------------  ------------  ------------  ------------  ------------
                   aten::addmm        70.00%        7.000s        72.00%        7.200s       7.200ms          1000
      aten::mkldnn_convolution        15.00%        1.500s        15.00%        1.500s      15.000ms           100
                   aten::copy_         5.00%     500.000ms         5.00%     500.000ms      50.000us         10000
                    aten::item         0.50%      50.000ms         0.60%      60.000ms      60.000us          1000
       Optimizer.step#SGD.step         3.00%     300.000ms         8.00%     800.000ms     800.000us          1000
------------------------------
Self CPU time total: 10.000s
""",
    "memsum.txt": """\
|===========================================================================|
|                  PyTorch CUDA memory summary, device ID 0                 |
|---------------------------------------------------------------------------|
|            CUDA OOMs: 0            |        cudaMalloc retries: 0         |
|===========================================================================|
|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |
|---------------------------------------------------------------------------|
| Allocated memory      |  41234 MiB |  43000 MiB |   1200 GiB |   1160 GiB |
| Active memory         |  41234 MiB |  43000 MiB |   1200 GiB |   1160 GiB |
| GPU reserved memory   |  45000 MiB |  45000 MiB |  45000 MiB |      0 B   |
| Non-releasable memory |    812 MiB |   1200 MiB |    500 GiB |    499 GiB |
|===========================================================================|
""",
    "question.txt": """\
How do I choose the batch size for fine-tuning Mistral 7B on two A100 80GB? We run bf16 with FSDP and get 11k tokens/s per GPU; memory is at 70 of 80 GB and utilization 97%. Is there anything else worth trying?
""",
    "fixed.txt": """\
Fixed: after setting num_workers=8 and pin_memory=True the GPU is at 97% and the data time is 1 ms of a 420 ms step.
""",
    "profile.txt": """\
We profiled 5 steps: 88% of the step is matmul and attention, 4% norm, 3% copies, 2% optimizer (fused AdamW), 3% idle. No cudaMalloc after the first step.
""",
    "eval.log": """\
Evaluating: 100%|##########| 200/200 [01:00<00:00, 3.33it/s]
model.eval(), torch.no_grad()
accuracy 0.913
""",
    "ckpt.log": """\
Resuming from checkpoint /data/run7/step_4000
Loaded optimizer state (AdamW fused)
gradient_checkpointing=True  micro_batch_size=4  sequence_length=8192
step 4001 loss 1.911 mfu 0.43
step 4002 loss 1.913 mfu 0.43
""",
    "ray.log": """\
(RayTrainWorker pid=3001) Setting up process group for: env:// [rank=0, world_size=4]
(RayTrainWorker pid=3002) step 10 loss 3.1
(raylet) Spilled 0 MiB
""",
    "lightning.log": """\
GPU available: True (cuda), used: True
LOCAL_RANK: 0 - CUDA_VISIBLE_DEVICES: [0,1,2,3]
  | Name  | Type | Params
0 | model | Net  | 124 M
124 M     Trainable params
Epoch 3:  87%|########7 | 870/1000 [05:01<00:45, 2.89it/s, v_num=4, train_loss=0.512]
`Trainer.fit` stopped: `max_epochs=4` reached.
""",
    "warn.log": """\
/usr/lib/python3/site-packages/torch/utils/data/dataloader.py:557: UserWarning: This DataLoader will create 16 worker processes in total. Our suggested max number of worker in current system is 8, which is smaller than what this DataLoader is going to create.
UserWarning: Detected call of `lr_scheduler.step()` before `optimizer.step()`.
FutureWarning: You are using `torch.load` with `weights_only=False`
step 1 loss 2.1
""",
    "docker.log": """\
docker run --gpus all --shm-size=16g --ipc=host -v /data:/data train:latest
Unable to find image 'train:latest' locally
Status: Downloaded newer image for train:latest
step 1 loss 3.3
""",
    "sanity.log": """\
CUDA available: True, device count: 8, NVIDIA H100 80GB HBM3
torch.cuda.memory_allocated: 512 MiB, reserved 1024 MiB, free 78.1 GiB of 79.1 GiB
nccl-tests all_reduce_perf: # Avg bus bandwidth    : 437.2
""",
    "killed_ok.log": """\
Stopping container train-1 (exit code 0)
worker processes terminated cleanly
""",
    "ddp.log": """\
[rank0]: DistributedDataParallel find_unused_parameters=False bucket_cap_mb=25
[rank1]: epoch 1 took 301.2 s
[rank0]: epoch 1 took 301.3 s
""",
    "amp.log": """\
using bf16 autocast, TF32 enabled
scaler: 65536.0
step 1 loss 2.1 step_time 0.31s
""",
}
"""By the name of a file; each holds something that a careless pattern would fire on."""
