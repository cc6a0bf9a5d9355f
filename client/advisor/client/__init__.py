"""The trainer's part of the advisor: `attach()` watches a training run from inside, and costs it next to nothing.

    import advisor.client

    advisor.client.attach()

It imports the standard library, and torch only where the training has loaded it.
"""

from advisor.client.attachment import Attachment, attach

__all__ = ["Attachment", "attach"]
