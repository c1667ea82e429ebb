"""This project's translators: Transformer, vocabulary, search, and streaming and batched decoding."""
