"""The application: one function a job. Settings in, a result out, events on the way."""
