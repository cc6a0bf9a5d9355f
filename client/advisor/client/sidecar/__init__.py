"""The sidecar: a small process beside each trainer, which keeps its spool and says how it died.

It is started by `advisor.client.launch`, imports the standard library alone, never touches a GPU, and ends by itself.
"""
