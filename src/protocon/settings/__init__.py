"""Every setting of a run, validated; settings as text; what `auto` stands for."""
