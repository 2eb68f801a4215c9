#include "muster/core/listeners/watch/page/page_directory.h"

#include <fstream>

#include "muster/core/listeners/watch/page/curves_file.h"
#include "muster/core/listeners/watch/page/still_page.h"
#include "tests/support/log_lines.h"
#include "tests/support/test.h"

namespace muster::test {
namespace {

using namespace std::chrono_literals;

/// How many pieces of news a page is sent.
std::size_t piecesOf(const std::string& text, const std::string& part = "\"news\"") {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST_CASE("the page shows the runs of a directory, those that grow, and those that are added later") {
  const TemporaryDirectory directory;
  PageStore store;
  store.point("score/merged", 1, 0.5);
  CurvesFile file(directory / "averaging" / "seed-1.curves.jsonl", "averaging <f3>");
  file.update(store, false);
  PageDirectory runs(directory.path(), 0ms);
  CHECK(runs.runs() == 1);
  const auto early = runs.reader();
  CHECK(early->news() == R"([{"run":"averaging/seed-1","group":"averaging \u003cf3>","news":)"
                         R"({"all":true,"lost":0,"series":[{"name":"score/merged","points":[[1,0.5]]}]}}])");
  CHECK(early->news().empty());

  store.point("score/merged", 2, 0.25);
  file.update(store, false);
  writeCurves(directory / "averaging" / "seed-2.curves.jsonl", "averaging <f3>", store);
  runs.update();
  CHECK(runs.runs() == 2);
  const auto news = early->news();
  CHECK(piecesOf(news) == 2);
  CHECK_CONTAINS(news, "[[2,0.25]]");
  CHECK_CONTAINS(news, "\"run\":\"averaging/seed-2\"");
  CHECK(piecesOf(runs.reader()->news()) == 3);  // all lines, for one that comes late
  CHECK_CONTAINS(stillPage(runs.news()), "averaging \\u003cf3>");

  // When points are thinned the file is written anew, and what is sent says so.
  for (int i = 3; i < 2100; ++i) store.point("score/merged", i, 1.0 / i);
  file.update(store, true);
  runs.update();
  const auto anew = early->news();
  CHECK(piecesOf(anew, "\"all\":true") == 1);
  CHECK(piecesOf(anew) == 1);
  CHECK(linesOf(readFile(directory / "averaging/seed-1.curves.jsonl")).size() == 2);
}

TEST_CASE("an incomplete line is read later, and a file that holds no curves gives one warning") {
  const TemporaryDirectory directory;
  writeFile(directory / "a.curves.jsonl", std::string(curvesHead("")) + "{\"series\":[]}\n{\"ser");
  writeFile(directory / "other.jsonl", "not ours");
  writeFile(directory / "b.curves.jsonl", "{\"program\":\"muster compare\"}\n");
  writeFile(directory / "c.curves.jsonl", "no JSON\n");
  const LogLines log;
  PageDirectory runs(directory.path(), 0ms);
  for (int i = 0; i < 2; ++i) {
    CHECK(runs.runs() == 1);
    CHECK(log.all().size() == 2);
    runs.update();
  }
  const auto reader = runs.reader();
  CHECK(reader->news() == R"([{"run":"a","group":"a","news":{"series":[]}}])");
  std::ofstream(directory / "a.curves.jsonl", std::ios::app) << "ies\":[]}\n";
  runs.update();
  CHECK(piecesOf(reader->news()) == 1);
  CHECK(thrown<FileError>([&] {
          PageDirectory(directory / std::string(256, 'x'));
        }).ends_with(": cannot be read: File name too long"));
  CHECK_CONTAINS(thrown<FileError>([&] { PageDirectory(directory / "missing"); }), "is no directory");
}

TEST_CASE("links to directories are followed, each run is shown once, and loops end") {
  const TemporaryDirectory directory, outside;
  const PageStore store;
  const auto save = [&](const std::filesystem::path& file) { writeCurves(file, "", store); };
  const auto link = [](const std::filesystem::path& to, const std::filesystem::path& name) {
    std::filesystem::create_symlink(to, name);
  };
  const auto root = directory / "runs";
  save(root / "own" / "a.curves.jsonl");
  save(directory / "beside.curves.jsonl");
  save(outside / "far" / "b.curves.jsonl");
  save(outside / "c.curves.jsonl");
  link("own", root / "again");                          // the same directory
  link("own/a.curves.jsonl", root / "0.curves.jsonl");  // the same file
  link("..", root / "own" / "loop");
  link(".", root / "own" / "self");
  link("../..", root / "own" / "above");  // holds `beside`, which is not below the directory
  link(outside / "far", root / "away");
  link(outside / "far", root / "away again");
  link(outside.path(), outside / "far" / "back");  // leads to `c`, and to `far` again
  link("nowhere", root / "broken");
  std::multiset<std::string> found;
  for (const auto& file : curvesBelow(root)) found.insert(file.lexically_relative(root).string());
  CHECK(found ==
        std::multiset<std::string>{"away/b.curves.jsonl", "away/back/c.curves.jsonl", "own/a.curves.jsonl"});
  CHECK(PageDirectory(root).runs() == 3);
  CHECK(PageDirectory(root / "away").runs() == 1);  // `back` is above it

  const LogLines log;
  CHECK(curvesBelow(root, 50).size() == 3);
  CHECK(log.all().empty());
  CHECK(curvesBelow(root, 3).size() < 3);
  REQUIRE(log.all().size() == 1);
  CHECK(log.all().front() == fmt::format("warning: page: {} holds too many files and directories to look at "
                                         "all, so runs may be missing; name a directory that holds only runs",
                                         root.string()));
}

TEST_CASE("a file of curves that cannot be written gives one warning") {
  const TemporaryDirectory directory;
  PageStore store;
  CurvesFile file(directory / "a.curves.jsonl", "");
  std::filesystem::remove_all(directory.path() / "a.curves.jsonl");
  std::filesystem::create_directory(directory.path() / "a.curves.jsonl");
  const LogLines log;
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < 2100; ++k) store.point("a", k, k);  // so that it is written anew
    file.update(store, false);
  }
  CHECK(log.all().size() == 1);
}

}  // namespace
}  // namespace muster::test
