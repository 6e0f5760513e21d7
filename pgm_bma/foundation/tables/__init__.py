"""Tables as integer codes: reading, kinds of columns, numeric columns, missing values."""
