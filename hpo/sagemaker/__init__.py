"""A job of the record in the words of SageMaker's API."""
