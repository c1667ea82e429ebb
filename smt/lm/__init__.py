"""Causal language models as translators: reading their files, the network, adapters, training, decoding."""
