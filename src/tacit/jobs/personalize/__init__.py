"""Does personalization help, and which users."""
