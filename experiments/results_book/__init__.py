"""Measure items into tracked ledgers, and generate the tables and pictures of the pages from them."""
