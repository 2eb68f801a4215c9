"""Opens a page in headless Chromium, for page_browser_test: browser.py ADDRESS DIRECTORY. Prints what is wrong, one line
each, and nothing where all is well; leaves screenshots in DIRECTORY. Ends with 77 and says why where there is no
Chromium or no selenium."""

import shutil
import sys
import time

try:
    from selenium import webdriver
    from selenium.common.exceptions import WebDriverException
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
except ImportError as missing:
    print(f"{sys.executable}: {missing}")
    sys.exit(77)
if not shutil.which("chromium") or not shutil.which("chromedriver"):
    print("there is no chromium or no chromedriver (Debian: chromium, chromium-driver)")
    sys.exit(77)

address, directory = sys.argv[1:]
options = Options()
for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,1000"):
    options.add_argument(argument)
options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
try:
    driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
except WebDriverException as error:
    print(f"Chromium does not start here: {error.msg.splitlines()[0]}")
    sys.exit(77)


def check(condition, what):
    if not condition:
        print(what)


def script(text):
    return driver.execute_script("return " + text)


def wait(text, what):
    """Until a script is true, for as long as a loaded machine may need."""
    end = time.monotonic() + 60
    while not script(text):
        if time.monotonic() > end:
            print(f"did not come: {what}")
            return
        time.sleep(0.05)


def pixels():
    """Drawn pixels of the score's canvas."""
    return script("(() => { const c = document.querySelector('#charts .plot canvas');"
                  "const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
                  "let n = 0; for (let i = 3; i < d.length; i += 4) n += d[i] > 0; return n; })()")


try:
    driver.get(address)
    wait("document.documentElement.dataset.drawn > 0 && charts.some(c => c.graph)", "the first curve")
    check(script("location.search") == "", "the token is still in the address")
    check(script("document.title") == "muster", "the title is " + str(script("document.title")))
    check(script("document.querySelector('#charts figcaption').textContent").startswith("Score"), "no score at the top")
    check(pixels() > 200, f"the score is not drawn: {pixels()} pixels")
    keys = script("[...document.querySelectorAll('#charts figure:first-child .keys button')].map(b => b.textContent)")
    for name in ("worker 0", "worker 1", "merged"):
        check(any(key.startswith(name) for key in keys), f"no {name} beneath the score: {keys}")
    check(script("charts[0].bad").count(5) == 1, "the score that is no number has no mark")
    # A hostile name is text and nothing else.
    check(script("document.querySelectorAll('img').length") == 0, "a name became an element")
    check(script("window.hacked === undefined"), "a name became a script")
    check("<img" in script("document.getElementById('layer').textContent"), "the hostile layer is not named")
    check("<script>" in script("document.getElementById('words').textContent"), "the hostile text is not shown")
    check(script("document.querySelectorAll('#graph .node').length") == 3, "the network has not its three nodes")
    driver.execute_script("document.querySelector('#graph .node:nth-of-type(2)').dispatchEvent(new Event('click'))")
    check(script("document.querySelectorAll('#settings tr').length") > 0, "no settings of a layer")
    check(script("document.querySelectorAll('#histogram-parameters .bar').length") == 50, "no histogram")

    # 10,000 points have been thinned, and the page goes on.
    wait("store.series.get('mine/long') && store.series.get('mine/long').steps.length > 500", "a long curve")
    check(script("store.series.get('mine/long').steps.length") <= 2000, "the long curve is not thinned")
    check(script("Math.max(...store.series.get('mine/long').values)") == 1000, "the long curve lost its peak")

    # Zoom by keys, and back.
    plot = driver.find_element(By.CSS_SELECTOR, "#charts .plot")
    whole = script("charts[0].graph.xAxisRange()")
    plot.send_keys("+")
    near = script("charts[0].graph.xAxisRange()")
    check(near[1] - near[0] < whole[1] - whole[0], f"+ did not zoom: {whole}, {near}")
    driver.find_element(By.TAG_NAME, "body").send_keys("r")
    check(script("charts[0].graph.isZoomed()") is False, "r did not show the whole range")
    # A curve switched off and on.
    driver.execute_script("document.querySelector('#charts .keys button').click()")
    check(script("charts[0].graph.visibility()")[0] is False, "a curve could not be switched off")
    driver.execute_script("document.querySelector('#charts .keys button').click()")

    for theme in ("dark", "light"):
        if script("document.documentElement.dataset.theme") != theme:
            driver.find_element(By.ID, "theme").click()
        check(script("document.documentElement.dataset.theme") == theme, f"no {theme} theme")
        driver.save_screenshot(f"{directory}/{theme}.png")
    # Paused, what comes is kept and not drawn.
    driver.find_element(By.ID, "pause").send_keys(Keys.ENTER)
    check(script("document.getElementById('pause').getAttribute('aria-pressed')") == "true", "no pause")
    driver.find_element(By.ID, "pause").send_keys(Keys.ENTER)

    driver.set_window_size(390, 844)
    time.sleep(0.3)
    check(script("document.documentElement.scrollWidth <= window.innerWidth"), "a phone would scroll sideways: "
          + str(script("[document.documentElement.scrollWidth, window.innerWidth]")))
    driver.save_screenshot(f"{directory}/phone.png")
    for line in driver.get_log("browser"):
        if "willReadFrequently" in line["message"]:  # because of pixels() here
            continue
        print("console: " + line["message"][:300])
finally:
    driver.quit()
