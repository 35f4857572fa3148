"""From Python functions to Programs and back: all that reads or writes jaxprs."""
