"""The store that workers and coordinators share: tables, transactions, blobs."""
