"""Headless Chromium for tests of pages. Where it is missing, the tests that need it are skipped."""
import importlib.util
import shutil
import unittest

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
HAS_BROWSER = bool(CHROMIUM and DRIVER and importlib.util.find_spec("selenium"))
PATIENCE = 60  # seconds, a limit against hangs

needs_browser = unittest.skipUnless(HAS_BROWSER, "needs the Debian packages chromium, chromium-driver and python3-selenium")


class Browser(unittest.TestCase):
    """Tests that open pages. No host can be reached. A class below has `folder`, a temporary folder."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not HAS_BROWSER:
            return
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
        options = webdriver.ChromeOptions()
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND",
                         f"--user-data-dir={cls.folder / 'profile'}"):
            options.add_argument(argument)
        options.binary_location = CHROMIUM
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        cls.browser = webdriver.Chrome(options=options, service=Service(DRIVER))
        cls.addClassCleanup(cls.browser.quit)
        cls.browser.set_page_load_timeout(PATIENCE)
        cls.browser.set_script_timeout(PATIENCE)

    def open_page(self, path, width=1280):
        """Opens a page and checks that the console has no error."""
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 700})
        self.browser.get(path.as_uri())
        self.no_errors()

    def no_errors(self):
        self.assertEqual([entry["message"] for entry in self.browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")], [])

    def do(self, script, *arguments):
        """Runs JavaScript after the page has drawn what is due, and returns its result."""
        self.browser.execute_async_script("const done = arguments[arguments.length - 1]; requestAnimationFrame(() => requestAnimationFrame(() => done()));")
        return self.browser.execute_script(script, *arguments)

    def column(self, table, which):
        return self.do("return [...document.querySelectorAll(`[data-table=${arguments[0]}] tbody tr`)].map((row) => row.children[arguments[1]].textContent)",
                       table, which)
