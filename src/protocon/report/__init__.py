"""A run, or several, on one HTML page: what is in its folder → numbers → figures → page.

Reads run folders by the names of their files and knows nothing of the engine that wrote them, so that a run that was
stopped, or that another machine made, can be drawn as well.
"""
