"""The lab book's engine: items are measured into tracked ledgers, and pages and pictures are made from these alone."""
