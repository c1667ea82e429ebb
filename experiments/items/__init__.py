"""The lab book's items: a file for each figure, table or study, named by what it shows."""
