"""The search of the site that ./run docs makes. Doxygen's own finds a page by the beginning of its title alone. This adds
titles and headings from each of their words on, and what the guides' texts are about. An entry is what is sought, what is
shown, and its link."""
import html
import json
import re
from collections import Counter, defaultdict

FUNCTION_WORDS = set("""about all also and any are been but can does each for from had has have how into its may more most
    not off one only other our out own same than that the their them then there these they this those too was were what when
    where which while who will with without you your""".split())
MOST_GUIDES = 3  # that a word of texts leads to


def plain(markup):
    markup = re.sub("</?(?:a|b|code|em|span|strong)\\b[^>]*>", "", markup)
    return " ".join(html.unescape(re.sub("<[^>]*>", " ", markup)).split())


def sections(markup):
    """The title of an HTML page, and of each of its sections the anchor, heading and text; the first has no heading."""
    title = re.search(r'<div class="title">(.*?)</div>', markup, re.S)
    body = markup.partition('<div class="textblock">')[2].partition("<!-- contents -->")[0]
    body = re.sub(r'<div class="ttc".*?</div></div>$', "", body, flags=re.S | re.M)  # the API's boxes over code
    first, *others = re.split(r'<h[1-6]><a class="anchor" id="([^"]+)"></a>\s*(.*?)</h[1-6]>', body, flags=re.S)
    return plain(title[1] if title else ""), [("", "", plain(first)),
                             *((anchor, plain(heading), plain(text))
                               for anchor, heading, text in zip(others[::3], others[1::3], others[2::3]))]


def telling(word):
    return len(word) > 2 and word not in FUNCTION_WORDS


def terms(text):
    """The words of a text, also those within `fine-tune` and `weightDecay`, and pairs of words."""
    found = list(re.finditer("[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*", text))
    for match, following in zip(found, [*found[1:], None]):
        whole = match[0].lower()
        parted = re.sub("(?<=[a-z])(?=[A-Z])", " ", match[0]).lower() if match[0][0].islower() else whole
        parts = {parted[start.start():] for start in re.finditer(r"\b\w+", parted) if telling(start[0])}
        if telling(whole):
            parts.add(whole)
        yield from parts | {re.sub("is(e[drs]?|ing|ation)$", r"iz\1", part) for part in parts}  # also in American
        if following and text[match.end():following.start()] == " " and telling(whole) and telling(following[0].lower()):
            yield f"{whole} {following[0].lower()}"


def link(page, anchor):
    return f"../{page}#{anchor}" if anchor else f"../{page}"


def heading_entries(pages):
    """Leads titles and headings, from each of their words on, to where they are."""
    return sorted((heading.lower()[word.start():], f"{heading} ({title})" if anchor else title, link(page, anchor))
                  for page, (title, parts) in pages.items()
                  for anchor, heading in [("", title), *((anchor, heading) for anchor, heading, _ in parts if heading)]
                  for word in re.finditer("(?<![a-z0-9])[a-z0-9]+", heading.lower()) if telling(word[0]))


def total(counts):
    return sum(counts.values())


def text_entries(guides):
    """Leads each word to the guides that have it most often for their length, there to the section that does.
    @param guides  {page: (title, sections)}"""
    counts, lengths = defaultdict(lambda: defaultdict(Counter)), Counter()
    for page, (title, parts) in guides.items():
        for anchor, heading, text in parts:
            for term in [*terms(heading or title), *terms(text)]:
                counts[term][page][anchor, heading] += 1
                lengths[page] += 1
    for term, pages in sorted(counts.items()):
        if " " in term and sum(map(total, pages.values())) < 2:
            continue
        best = sorted(pages, key=lambda page: total(pages[page]) / lengths[page] ** 0.5, reverse=True)
        for page in best[:MOST_GUIDES]:
            (anchor, heading), _ = pages[page].most_common(1)[0]
            title = guides[page][0]
            yield term, f"{term}: {heading} ({title})" if anchor else f"{term}: {title}", link(page, anchor)


def without_repeats(entries):
    """Leaves out what another entry shows for the same search: one of the same words, the first, or of more words."""
    first, sought = {}, defaultdict(set)
    for words, text, to in entries:
        first.setdefault((words, to), (words, text, to))
        sought[to].add(words)
    return [(words, text, to) for words, text, to in first.values()
            if not any(other.startswith(words) and other != words for other in sought[to])]


def lines(entries, kind):
    """Entries as lines of Doxygen's index, by their first letter; Doxygen compares words as it writes them here."""
    of_letter = defaultdict(list)
    for number, (words, text, to) in enumerate(entries):
        identity = "".join(c if re.match("[a-z0-9\u0080-\uffff]", c) else f"_{ord(c):02x}" for c in words)
        shown = json.dumps(html.escape(text, False))
        of_letter[words[0]].append(f"  ['{identity}_{kind}{number}',[{shown},['{to}',1,'{kind}']]]")
    return of_letter


def index_pages(site):
    """Adds entries to the search: those of guides are shown before Doxygen's, those of other pages after them."""
    pages = {}
    for file in sorted(site.glob("*.html")):
        markup = file.read_text(encoding="utf-8", errors="replace")
        if "PageDoc" in markup:
            pages[file.name] = sections(markup)
    listed = re.findall(r'class="el" href="([\w-]+\.html)"', (site / "guides.html").read_text(encoding="utf-8"))
    guides = {page: pages.pop(page) for page in dict.fromkeys([*listed, "index.html"]) if page in pages}
    before = lines(without_repeats([*heading_entries(guides), *text_entries(guides)]), "guide")
    after = lines(without_repeats(heading_entries(pages)), "page")
    title_alone = re.compile(r"^  \['\w*',\['[^']*',\['\.\./(?:" + "|".join([*guides, *pages]) + r")',1,'\w*'\]\]\],?$")
    letters = re.search(r'0: "([^"]*)"', (site / "search/searchdata.js").read_text(encoding="utf-8"))[1]
    for number, letter in enumerate(letters):
        file = site / f"search/all_{number:x}.js"
        doxygen = [line.rstrip(",") for line in file.read_text(encoding="utf-8").splitlines()
                   if line.startswith("  [") and not title_alone.match(line)]
        all_lines = [*before[letter], *doxygen, *after[letter]]
        file.write_text("var searchData=\n[\n" + ",\n".join(all_lines) + "\n];\n", encoding="utf-8")
