"""Published files to models. Only this folder knows the names of published weights."""
