"""Tasks to fine-tune on: labelled examples out of files, as rows of tokens, and their scores."""
