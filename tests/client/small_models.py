"""Models for tests of the registry: the reference GPT with a checkpointed form, a small Llama, adapters of low rank."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from advisor.collect.reference_training import TinyGPT

HIDDEN, HEADS, KEY_HEADS, LAYERS, VOCABULARY, POSITIONS = 128, 4, 2, 4, 128, 128


def ignore(*_):
    """What watches a model where nobody does."""


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(HIDDEN))

    def forward(self, hidden):
        return self.weight * hidden * torch.rsqrt(hidden.pow(2).mean(-1, keepdim=True) + 1e-6)


class Rotary(nn.Module):
    def __init__(self):
        super().__init__()
        angles = torch.outer(torch.arange(POSITIONS), 10000.0 ** -(torch.arange(0, HIDDEN // HEADS, 2) / (HIDDEN // HEADS)))
        self.register_buffer("cos", torch.cat([angles, angles], -1).cos(), persistent=False)
        self.register_buffer("sin", torch.cat([angles, angles], -1).sin(), persistent=False)

    def forward(self, heads, start=0):
        left, right = heads.chunk(2, -1)
        places = slice(start, start + heads.shape[-2])
        return heads * self.cos[places] + torch.cat([-right, left], -1) * self.sin[places]


class LlamaBlock(nn.Module):
    def __init__(self):
        super().__init__()
        size = HIDDEN // HEADS
        self.norm, self.norm_after = Norm(), Norm()
        self.q_proj, self.o_proj = nn.Linear(HIDDEN, HIDDEN, bias=False), nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.k_proj, self.v_proj = nn.Linear(HIDDEN, KEY_HEADS * size, bias=False), nn.Linear(HIDDEN, KEY_HEADS * size, bias=False)
        self.gate_proj, self.up_proj = nn.Linear(HIDDEN, 344, bias=False), nn.Linear(HIDDEN, 344, bias=False)
        self.down_proj = nn.Linear(344, HIDDEN, bias=False)

    def forward(self, hidden, rotary, past=None):
        batch, length, _ = hidden.shape
        normed = self.norm(hidden)
        query, key, value = (
            part(normed).view(batch, length, -1, HIDDEN // HEADS).transpose(1, 2) for part in (self.q_proj, self.k_proj, self.v_proj)
        )
        start = past[0].shape[2] if past is not None and len(past) else 0
        query, key = rotary(query, start), rotary(key, start)
        if past is not None:
            if len(past):
                key, value = torch.cat([past[0], key], 2), torch.cat([past[1], value], 2)
            past[:] = [key, value]
        repeated = (part.repeat_interleave(HEADS // KEY_HEADS, 1) for part in (key, value))
        attended = nn.functional.scaled_dot_product_attention(query, *repeated, is_causal=past is None)
        hidden = hidden + self.o_proj(attended.transpose(1, 2).reshape(batch, length, HIDDEN))
        normed = self.norm_after(hidden)
        return hidden + self.down_proj(nn.functional.silu(self.gate_proj(normed)) * self.up_proj(normed))


class SmallLlama(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.rotary = nn.Embedding(VOCABULARY, HIDDEN), Rotary()
        self.blocks = nn.ModuleList(LlamaBlock() for _ in range(LAYERS))
        self.norm, self.head = Norm(), nn.Linear(HIDDEN, VOCABULARY, bias=False)
        self.call = lambda block, *inputs: block(*inputs)
        self.seen = ignore

    def forward(self, tokens, past_key_values=None):
        hidden = self.tokens(tokens)
        for place, block in enumerate(self.blocks):
            self.seen(place, hidden)
            hidden = self.call(block, hidden, self.rotary, *([past_key_values[place]] if past_key_values is not None else []))
        return self.head(self.norm(hidden))


class WatchableGPT(TinyGPT):
    """The reference GPT whose blocks can be called in another way."""

    def __init__(self):
        super().__init__()
        self.call = lambda block, *inputs: block(*inputs)
        self.seen = ignore

    def forward(self, tokens):
        hidden = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        for place, block in enumerate(self.blocks):
            self.seen(place, hidden)
            hidden = self.call(block, hidden)
        return self.head(self.norm(hidden))


class Adapter(nn.Module):
    """A frozen linear layer and a trained product of low rank beside it."""

    def __init__(self, base, rank=8):
        super().__init__()
        self.base = base
        self.lora_A, self.lora_B = nn.Linear(base.in_features, rank, bias=False), nn.Linear(rank, base.out_features, bias=False)
        nn.init.zeros_(self.lora_B.weight)

    def forward(self, hidden):
        return self.base(hidden) + self.lora_B(self.lora_A(hidden))


def adapt(model):
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.Linear) and name != "head":
                setattr(module, name, Adapter(child))
    return model


MODELS = {"gpt": WatchableGPT, "llama": SmallLlama}


def a_model(kind, form, note_checkpointed=ignore):
    """A model of MODELS in a form: eager, checkpointed, reentrant or lora."""
    model = MODELS[kind]()
    if form == "lora":
        adapt(model)
    if form in {"checkpointed", "reentrant"}:

        def call(block, *inputs):
            note_checkpointed(inputs[0])
            return checkpoint(block, *inputs, use_reentrant=form == "reentrant")

        model.call = call
    return model
