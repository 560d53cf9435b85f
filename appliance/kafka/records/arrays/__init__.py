"""The records of many batches at once, as arrays of NumPy and Arrow; imported only where records pass SQL. Pure.

- ``varints``: varints as arrays, read and written.
- ``decoding``: batches become places of fields in their bytes, and those become Arrow's arrays.
- ``encoding``: Arrow's arrays become batches.
- ``headers``: the headers of records as Arrow's lists, and back.
- ``columns``: batches as columns, and columns as a batch with each record at its own offset.
"""
