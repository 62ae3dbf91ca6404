"""Reading and writing files: text, tables and columns, as both jobs need them."""
