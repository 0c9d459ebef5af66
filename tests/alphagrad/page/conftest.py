"""A headless browser, and the pages that it opens."""

import shutil

import pytest

from alphagrad.page.data import page_data
from alphagrad.page.html import as_html

from .views import ORDERS, view_of

WINDOW = (1440, 1000)
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="session")
def driver():
    """Chromium, driven by selenium. Without either of them, the tests are skipped."""
    webdriver = pytest.importorskip(
        "selenium.webdriver", reason="selenium is not installed; it is in the dependency group test"
    )
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    service = shutil.which("chromedriver")
    if browser is None or service is None:
        pytest.skip(
            f"there is no {'browser' if browser is None else 'chromedriver'}; install chromium and chromedriver"
        )
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    width, height = WINDOW
    for argument in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "hide-scrollbars",
                     f"window-size={width},{height}"):  # fmt: skip
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    found = webdriver.Chrome(options=options, service=webdriver.ChromeService(service))
    yield found
    found.quit()


@pytest.fixture(scope="session")
def pages(tmp_path_factory):
    """The page of a graph of `views`, created on demand."""
    folder = tmp_path_factory.mktemp("pages")
    made = {}

    def page(name, counting="folded", orders=ORDERS):
        key = name, counting, orders
        if key not in made:
            view = view_of(name, counting, orders)
            path = folder / f"{len(made)}.html"
            path.write_text(as_html([page_data(view)], name), encoding="utf-8")
            made[key] = view, path
        return made[key]

    return page
