"""The trainer's part of the advisor.

It holds nothing yet: in this version the advisor reads files that somebody saved (`advisor-cli diagnose`). What will live here runs inside
other people's training processes, so it may import the standard library, and torch only when it is asked to; a test keeps it so.
"""
