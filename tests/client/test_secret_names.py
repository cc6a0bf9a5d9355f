import pytest

from advisor.client.secret_names import PLAIN, SECRET, SECRET_TEXT, STEMS, SUSPECT, WORDS, judged

SECRETS = """
    WANDB_API_KEY HF_TOKEN HUGGING_FACE_HUB_TOKEN HUGGINGFACEHUB_API_TOKEN AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN
    OPENAI_API_KEY ANTHROPIC_API_KEY COMET_API_KEY NEPTUNE_API_TOKEN CLEARML_API_ACCESS_KEY CLEARML_API_SECRET_KEY MLFLOW_TRACKING_PASSWORD
    MLFLOW_TRACKING_TOKEN KAGGLE_KEY GITHUB_TOKEN GH_TOKEN GITLAB_TOKEN CI_JOB_TOKEN SLURM_JWT AZURE_STORAGE_KEY AZURE_CLIENT_SECRET
    AZURE_STORAGE_CONNECTION_STRING GOOGLE_API_KEY GOOGLE_APPLICATION_CREDENTIALS DATABRICKS_TOKEN REPLICATE_API_TOKEN SENTRY_DSN
    PGPASSWORD MYSQL_PASSWORD POSTGRES_PASSWORD REDIS_PASSWORD DB_PASS SMTP_PASS SSH_PRIVATE_KEY DOCKER_AUTH NPM_TOKEN PYPI_TOKEN
    SLACK_WEBHOOK_URL LANGCHAIN_API_KEY TELEGRAM_TOKEN JUPYTER_TOKEN VAULT_TOKEN MINIO_SECRET_KEY ENCRYPTION_KEY NGC_API_KEY
    api_key api-key apiKey apikey API_KEYS --api-key --wandb-key --hf_token --token --password --passwd secret client_secret clientSecret
    auth_token authToken access_token accessToken refresh_token bearer_token session_token hub_token push_to_hub_token hf_auth_token
    private_key privateKey ssh_key signing_key db_password dbpassword userPassword mysecret credentials aws_credentials cookie
    wandb.key wandb.api_key model.hf_token secrets.user openai_key azure_key auth_tokens api_tokens access_keys basic_auth proxy_auth
    token2 API_KEY_2 api_key_prod passphrase my_passphrase http_password access_key_id github_pat
""".split()

PLAIN_OR_SUSPECT = """
    tokenizer tokenizer_name tokenizer_path Tokenizer tokenizers_parallelism tokenization tokens max_tokens max_new_tokens num_tokens
    n_tokens total_tokens tokens_per_batch tokens_per_second token_count token_id token_ids token_type_ids token_embedding token_dropout
    pad_token eos_token bos_token unk_token mask_token sep_token cls_token pad_token_id eos_token_id image_token image_token_index
    additional_special_tokens special_tokens decoder_start_token_id forced_bos_token_id stop_token per_token_loss max_token first_token
    num_image_tokens min_new_tokens token_budget token_level_loss tokens_seen train_tokens
    key keys primary_key foreign_key sort_key cache_key image_key label_key text_key metric_key group_by_key rng_key key_dim d_key
    num_key_value_heads key_padding_mask query_key_value key_size kv_key keyboard monkey hotkey donkey turkey keypoints num_keypoints
    author authors authority auth_method forward_pass backward_pass num_passes passes compass bypass passthrough pass
    secretary seed seeds lr learning_rate batch_size weight_decay betas model_name dataset path data_path patience patch_size pattern
    signal sigma significant passenger cookiecutter password_file secret_name token_file api_key_env key_file access_token_url
    use_auth_token use-auth-token has_password no_token credentials_path session_id account_id client_id project user username
    PWD_DIR NCCL_SOCKET_IFNAME CUDA_VISIBLE_DEVICES TOKENIZERS_PARALLELISM HF_HOME HF_DATASETS_CACHE WANDB_PROJECT WANDB_MODE
    WANDB_RUN_ID AWS_REGION AWS_DEFAULT_REGION AWS_PROFILE MASTER_ADDR ssh_port sas_model connection_timeout webhook
""".split()


@pytest.mark.parametrize("name", SECRETS)
def test_the_name_of_a_secret_is_known(name):
    assert judged(name) >= SECRET_TEXT


@pytest.mark.parametrize("name", PLAIN_OR_SUSPECT)
def test_the_name_of_a_setting_is_no_secret(name):
    assert judged(name) <= SUSPECT


@pytest.mark.parametrize("name", ["lr", "tokenizer_class", "epochs", "model.layers.0", "", "-", "__", "7", "日本", "keras"])
def test_other_names_say_nothing(name):
    assert judged(name) in (PLAIN, SUSPECT)


@pytest.mark.parametrize("name", ["password", "db_password", "credentials", "client_secret"])
def test_numbers_are_hidden_below_names_of_passwords_alone(name):
    assert judged(name) == SECRET
    assert judged("my_token") == SECRET_TEXT
    assert judged("openai_key") == SECRET_TEXT


@pytest.mark.parametrize("name", ["api_key", "api-key", "apiKey", "ApiKey", "API_KEY", "api.key", "my.api_key", "--api-key"])
def test_the_spelling_of_a_name_does_not_matter(name):
    assert judged(name) == SECRET_TEXT


def test_every_name_that_is_not_plain_has_one_of_the_stems():
    for name in SECRETS:
        assert any(stem in name.lower() for stem in STEMS), name


def test_a_very_long_name_is_judged_by_its_end():
    assert judged("a_" * 100_000 + "password") == SECRET


def test_the_pattern_of_words_takes_apart_all_spellings():
    import re

    assert re.findall(WORDS, "HFToken2_maxNew-TOKENS") == ["HF", "Token", "2", "max", "New", "TOKENS"]
