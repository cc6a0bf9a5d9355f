"""A report in words: text for terminals, JSON by the contract, markdown for issues and chats."""
