"""Engine of the lab book: items are measured into tracked ledgers, the only source of pages and pictures."""
