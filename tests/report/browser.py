"""A headless Chromium for the tests of pages; `why_not` says what is missing."""

import shutil
import tempfile
from contextlib import contextmanager
from importlib.util import find_spec

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update "
    "--disable-sync --disable-quic --hide-scrollbars"
).split()


def why_not():
    """The reason why no browser can be driven here, or None."""
    if CHROMIUM is None or DRIVER is None:
        return "chromium and its driver are not installed (Debian: apt-get install chromium chromium-driver)"
    return None if find_spec("selenium") else "selenium is not installed (pip install 'pgm-bma[test]')"


@contextmanager
def browser(width=1280, height=900):
    """A driver with a profile of its own, which collects what the console says."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for flag in [*FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}"]:
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        driver = webdriver.Chrome(options=options, service=Service(DRIVER))
        try:
            yield driver
        finally:
            driver.quit()


def as_phone(driver, width=390, height=844):
    """The same page on a phone's screen."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": True}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def on_desk(driver):
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
