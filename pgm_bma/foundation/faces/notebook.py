"""What a notebook shows of a fitted estimator: two lines of words and a picture, below scikit-learn's box of parameters.

`Shown` is the one place: `plot()` chooses the picture (an estimator says which by `_picture`), `_repr_mimebundle_` and
`_repr_html_` add it. A picture that cannot be drawn leaves the words; a notebook never fails for it.
"""

from typing import Any

from sklearn.utils.validation import check_is_fitted


class Shown:
    """Mixin before scikit-learn's base."""

    _picture = "plot_network"  # the function of `plotting` that draws this estimator

    def plot(self, **options: Any) -> Any:
        """The picture of what was learned, drawn by the function of `plotting` that suits the estimator.

        Parameters
        ----------
        **options : dict
            Passed on, such as `title` and `ax`.

        Returns
        -------
        matplotlib Axes
            The picture.
        """
        from pgm_bma import plotting

        check_is_fitted(self)
        return getattr(plotting, self._picture)(self, **options)

    def _repr_html_inner(self):
        return self._with_picture(super()._repr_html_inner())

    def _repr_mimebundle_(self, **kwargs):
        bundle = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] = self._with_picture(bundle["text/html"])
        return bundle

    def _with_picture(self, box):
        if "schema_" not in self.__dict__:
            return box
        from pgm_bma.plotting.notebook import estimator_html

        return f"{box}{estimator_html(self)}"
