from types import SimpleNamespace

import pytest

from advisor.client.registry_caches import is_cache_class, is_cache_name, looks_like_cache


@pytest.mark.parametrize(
    "name",
    [
        "past_key_values",
        "past_key_value",
        "past_kv",
        "kv_buffer",
        "kv_cache",
        "kv_caches",
        "KVCache",
        "k_cache",
        "v_cache",
        "cache_k",
        "key_cache",
    ],
)
def test_names_of_caches_are_known(name):
    assert is_cache_name(name)


@pytest.mark.parametrize("name", ["cached_mask", "cos_cached", "rope_cache", "past_losses", "kv_proj", "weight", "represent", "data_cache"])
def test_names_of_other_things_are_not(name):
    assert not is_cache_name(name)


def test_a_bare_cache_is_one_where_it_holds_keys_and_values():
    keys, sines = SimpleNamespace(shape=(2, 4, 16, 32)), SimpleNamespace(shape=(128, 32))
    assert looks_like_cache("cache", [keys, keys])
    assert not looks_like_cache("cache", [sines, sines])
    assert looks_like_cache("layer_past", [keys, keys])
    assert not looks_like_cache("cache", [keys])
    assert not looks_like_cache("table", [keys, keys])


def test_classes_of_transformers_and_those_named_so_are_caches():
    base = type("Cache", (), {"__module__": "transformers.cache_utils"})
    assert is_cache_class(type("DynamicCache", (base,), {}))
    assert is_cache_class(type("PagedKVCache", (), {}))
    assert not is_cache_class(type("Cache", (), {"__module__": "functools"}))
