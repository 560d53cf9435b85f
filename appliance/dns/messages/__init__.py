"""DNS messages (RFC 1035): bytes in, values out, and back; no IO.

- ``wire``: messages read from untrusted bytes.
- ``question``: one question about one name.
- ``answers``: the shim's reply to a query.
- ``replies``: the meaning of a reply for the one who asked.
"""
