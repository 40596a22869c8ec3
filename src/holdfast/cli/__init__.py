"""The command `holdfast`: a thin front end that says what the service knows."""
