"""Causal language models as translators: file formats, network, adapters, training, decoding."""
