"""The report: one analysis of a data set's lengths, shown in a terminal, as JSON, as HTML and as pictures."""
