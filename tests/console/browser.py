"""A real browser without a window, with its page's text and its requests."""

import base64
import contextlib
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from tests.support.patience import PATIENCE


class Browser:
    """One browser with one page."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver
        self.errors: list[str] = []
        """The console's errors so far."""
        self._asked: list[str] = []

    def forget(self) -> None:
        """Leave the page, and have no cookies and nothing noted, like a new browser."""
        self.driver.get("about:blank")
        self.driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
        self.note_errors()
        self.asked()
        self.errors, self._asked = [], []

    def open(self, address: str) -> None:
        self.driver.get(address)

    def text(self) -> str:
        """The text of the page."""
        return self.driver.find_element(By.TAG_NAME, "body").text

    def find(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def click(self, words: str) -> None:
        """Click the button or link with these words, once it is there."""
        self.wait(words, lambda: [each for each in self.find("a, button") if each.text == words])[0].click()

    def fill(self, selector: str, text: str) -> None:
        (field,) = self.wait(selector, lambda: self.find(selector))
        field.clear()
        field.send_keys(text)

    def wait(self, what: str, holds: Callable[[], Any]) -> Any:
        """Wait until something holds, without a reload of the page; return what it gives."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            with contextlib.suppress(StaleElementReferenceException):
                if found := holds():
                    return found
            time.sleep(0.25)  # a look costs the browser some hundredths of a second
        raise AssertionError(f"{what}: not seen within {PATIENCE:g} s; the page shows:\n{self.text()}")

    def wait_for(self, *texts: str) -> None:
        """Wait until the page shows all these texts."""
        self.wait(" and ".join(texts), lambda: all(text in self.text() for text in texts))

    def asked(self) -> list[str]:
        """The addresses that the browser has asked for."""
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                self._asked.append(message["params"]["request"]["url"])
        return self._asked

    def note_errors(self) -> list[str]:
        """The errors of the console since the last call."""
        found = [
            entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")
        ]
        self.errors += found
        return found

    def require_no_errors(self) -> None:
        """Require that no page had an error, and that everything came from loopback."""
        self.note_errors()
        assert self.errors == []
        assert {urlsplit(address).hostname for address in self.asked() if address.startswith("http")} <= {"127.0.0.1"}

    def picture(self, path: Path, width: int, height: int) -> None:
        """Save the page as a picture, from its beginning."""
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        wanted = {"format": "webp", "quality": 70, "clip": clip, "captureBeyondViewport": True}
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(base64.b64decode(self.driver.execute_cdp_cmd("Page.captureScreenshot", wanted)["data"]))

    def looks(self, *, dark: bool, width: int) -> None:
        """Ask for the dark or the light look, on a screen of this width."""
        feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)


@contextlib.contextmanager
def browser(width: int = 1280, height: int = 900, *, scripts: bool = True) -> Iterator[Browser]:
    """A browser with a profile of its own, which ends with the block."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or "chromium"
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    if not scripts:
        options.add_experimental_option("prefs", {"profile.managed_default_content_settings.javascript": 2})
    with tempfile.TemporaryDirectory(prefix="browser-") as profile:
        for argument in (
            "--headless=new",
            "--no-sandbox",  # root has none
            "--disable-gpu",
            "--hide-scrollbars",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--no-first-run",
            f"--window-size={width},{height}",
            f"--user-data-dir={profile}",
        ):
            options.add_argument(argument)
        driver = webdriver.Chrome(options, Service(shutil.which("chromedriver") or "chromedriver"))
        try:
            yield Browser(driver)
        finally:
            driver.quit()
