#include "muster/core/listeners/watch/page/page_store.h"

#include "muster/core/listeners/watch/page/page_json.h"
#include "tests/support/test.h"

namespace muster::test {
namespace {

/// A store, what goes to it, and a reader.
struct Stored {
  /// What the reader is sent after the inbox's content went to the store.
  std::string news() {
    PageInbox::Content content;
    inbox.take(content);
    store.add(content);
    return store.news(seen);
  }
  PageInbox inbox;
  PageStore store;
  PageStore::Seen seen;
};

/// News of these series, as JSON.
std::string seriesOnly(bool all, const std::string& series) {
  return fmt::format(R"({{"all":{},"lost":0,"series":[{}]}})", all, series);
}

TEST_CASE("a reader is sent only what it has not seen") {
  Stored s;
  PageStore::Seen late;
  CHECK(s.news() == seriesOnly(true, ""));
  CHECK(s.news() == "");
  s.inbox.point("score/merged", 1, 0.5);
  s.inbox.point("score/merged", 2, 0.25);
  CHECK(s.news() == seriesOnly(false, R"({"name":"score/merged","points":[[1,0.5],[2,0.25]]})"));
  s.inbox.point("score/merged", 3, 0.125);
  s.inbox.text("plan", "two workers");
  CHECK(s.news() == R"({"all":false,"lost":0,"series":[{"name":"score/merged","points":[[3,0.125]]}],)"
                    R"("texts":{"plan":"two workers"}})");
  CHECK(s.news() == "");
  CHECK_CONTAINS(s.store.news(late), R"("points":[[1,0.5],[2,0.25],[3,0.125]])");
}

TEST_CASE("when a run starts again, its failure is forgotten and all its data are sent again") {
  Stored s;
  s.store.failed("out of coffee");
  CHECK(s.news() == R"({"all":true,"lost":0,"series":[],"failed":"out of coffee"})");
  s.store.begins();
  CHECK(s.news() == seriesOnly(true, ""));
  s.store.begins();
  CHECK(s.news() == "");
}

TEST_CASE("numbers that are not finite become null, and text cannot end its script") {
  Stored s;
  auto& inbox = s.inbox;
  inbox.point("a\"</script><script>alert(1)</script>\n\xff", 1, kNan);
  inbox.point("b", 2, -kInfinity);
  inbox.text("<!--", "\\ \x01 \x7f é");
  inbox.network(R"({"name": "<script>"})");
  const auto news = s.news();
  for (const char* part : {"<", "\n"}) CHECK_LACKS(news, part);  // a line end would end the event
  for (const char* part : {R"({"name":"b","points":[[2,null]]})", R"("points":[[1,null]])",
                           R"("\u003c!--":"\\ \u0001 \u007f é")", R"("network":{"name": "\u003cscript>"})"})
    CHECK_CONTAINS(news, part);
}

TEST_CASE("a thinned curve keeps its extremes and its order, and a reader is sent it again") {
  PageCurve curve;
  bool changed = false;
  for (int i = 0; i < 100'000; ++i) {
    const double value = i == 31'415 ? 100 : i == 27'182 ? -100 : i == 50'001 ? kNan : std::sin(i * 0.01);
    changed = curve.add({i, value}) || changed;
    REQUIRE(curve.points().size() < PageCurve::kMost);
  }
  CHECK(changed);
  CHECK(curve.points().size() > PageCurve::kMost / 4);
  const auto has = [&](std::int64_t step, double value) {
    return std::ranges::any_of(curve.points(),
                               [&](const auto& p) { return p.step == step && p.value == value; });
  };
  CHECK(has(31'415, 100));
  CHECK(has(27'182, -100));
  CHECK(std::ranges::count_if(curve.points(), [](const auto& p) { return std::isnan(p.value); }) == 1);
  CHECK(std::ranges::is_sorted(curve.points(), {}, &PageCurve::Point::step));
  Stored s;
  s.news();
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(PageCurve::kMost); ++i) s.inbox.point("a", i, 0.5);
  CHECK(s.news().starts_with(R"({"all":true,)"));
}

TEST_CASE("a curve can be read at an iteration, cut, and continued with the same groups") {
  PageCurve curve;
  CHECK(curve.at(3) == 0);
  curve.add({4, 8});
  CHECK(curve.at(2) == 4);  // from (0, 0)
  CHECK(curve.at(6) == 12);
  curve.add({8, 10});
  CHECK(curve.at(4) == 8);
  CHECK(curve.at(6) == 9);
  CHECK(curve.at(10) == 12.5);
  curve.endAt(7);
  CHECK(curve.points().size() == 1);

  PageCurve again({{4, 8}, {8, 10}}, 1);
  again.add({8, 11});
  again.add({8, 12});
  CHECK(again.points().size() == 3);
  CHECK(again.points()[1].value == 11);

  PageCurve whole, first;
  constexpr int kHalf = 40'000, kAll = 90'000;
  const auto value = [](int i) { return std::sin(i * 0.01); };
  for (int i = 0; i < kAll; ++i) whole.add({i, value(i)});
  for (int i = 0; i < kHalf; ++i) first.add({i, value(i)});
  CHECK(first.groupSize() > 1);
  PageCurve second(first.points(), first.groupSize());
  for (int i = kHalf; i < kAll; ++i) second.add({i, value(i)});
  CHECK(second.groupSize() == whole.groupSize());
  const auto half = [](const PageCurve& of) {
    return std::ranges::count_if(of.points(), [](const auto& p) { return p.step < kHalf; });
  };
  CHECK(std::abs(half(second) - half(whole)) < 10);
}

TEST_CASE("points of an earlier process come before those that the inbox has delivered") {
  Stored s;
  s.inbox.point("own", 1, 1);
  s.inbox.point("score/merged", 7, 0.5);
  s.news();
  s.store.putBefore("at/samples", PageCurve({{1, 8}}, 1));
  s.store.putBefore("score/merged", PageCurve({{1, 0.75}, {2, 0.625}}, 8));
  s.inbox.point("at/samples", 9, 72);
  s.inbox.point("own", 2, 2);
  CHECK(s.news() == seriesOnly(true, R"({"name":"own","points":[[1,1],[2,2]]},)"
                                     R"({"name":"score/merged","groupSize":8,"points":[[1,0.75],[2,0.625]]},)"
                                     R"({"name":"at/samples","points":[[1,8],[9,72]]})"));
}

TEST_CASE("a reader is sent everything again after a continued curve has replaced points") {
  Stored s;
  s.store.putBefore("score/epoch", PageCurve({{3, 0.5}, {6, 0.25}}, 1));
  s.news();
  s.inbox.point("score/epoch", 6, 0.125);
  CHECK(s.news() == seriesOnly(true, R"({"name":"score/epoch","points":[[3,0.5],[6,0.125]]})"));
  s.inbox.point("score/epoch", 9, 0.0625);
  CHECK(s.news() == seriesOnly(false, R"({"name":"score/epoch","points":[[9,0.0625]]})"));
}

TEST_CASE("without a server the inbox keeps a fixed number of points, and counts those lost") {
  PageInbox inbox;
  for (std::size_t i = 0; i < PageInbox::kRoom + 7; ++i) inbox.point("a", static_cast<std::int64_t>(i), 1);
  PageInbox::Content content;
  inbox.take(content);
  CHECK(content.points.size() == PageInbox::kRoom);
  CHECK(content.lost == 7);
  inbox.point("a", 1, 1);
  inbox.take(content);
  CHECK(textOf(content.points.size(), content.lost, content.newNames.size()) == "1 0 0");
}

TEST_CASE("only the newest progress and histograms are kept") {
  Stored s;
  s.inbox.progress({.running = true, .workers = 2, .epoch = 1, .lastEpoch = 3, .iteration = 9});
  s.inbox.progress(
      {.running = true, .workers = 2, .epoch = 1, .lastEpoch = 3, .iteration = 10, .batchesPerEpoch = 7});
  s.inbox.histograms({.step = 4, .layers = {{.name = "conv<1>", .parameters = {}, .update = {}}}});
  const auto news = s.news();
  CHECK_CONTAINS(news, R"("progress":{"running":true,"workers":2,"epoch":1,"lastEpoch":3,"iteration":10,)"
                       R"("batches":0,"batchesPerEpoch":7,)");
  CHECK_CONTAINS(news, R"("histograms":{"step":4,"layers":[{"name":"conv\u003c1>","parameters":{"min":0,)");
  CHECK(s.news() == "");
}

}  // namespace
}  // namespace muster::test
