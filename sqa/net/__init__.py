"""The client for language models on a server, with its cache of replies."""
