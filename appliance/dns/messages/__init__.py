"""DNS messages (RFC 1035): bytes in, values out, and back; no IO.

- ``wire``: messages read from untrusted bytes.
- ``question``: one question about one name, and the meaning of a reply to it.
- ``answers``: the shim's reply to a query.
"""
