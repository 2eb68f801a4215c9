#include "muster/parallel/nodes/elastic/roster.h"

#include "tests/parallel/nodes/stored_texts.h"

using namespace muster;
using muster::test::StoredTexts;
using namespace std::chrono_literals;
using Names = std::vector<std::string>;

namespace {

Roster::Time at(std::chrono::milliseconds time) {
  return Roster::Time(time);
}

Roster rosterOf(const std::string& process, const std::string& common = "options") {
  return {process, common, 100ms};
}

}  // namespace

TEST_CASE("a card is read as it was written; other texts are no cards") {
  const MemberCard card{.common = "abc", .from = 7, .ready = true, .lost = {{"p", 3}, {"q", 12}}};
  std::string beat;
  const auto read = MemberCard::parse(card.text(41), beat);
  REQUIRE(read);
  CHECK(beat == "41");
  CHECK(read->common == "abc");
  CHECK(read->from == 7);
  CHECK(read->ready);
  CHECK(read->lost == card.lost);
  for (const char* const text : {"", "hello", "muster-elastic-1 1 abc 0 1", "muster-elastic-2 1 abc"})
    CHECK_FALSE_MESSAGE(MemberCard::parse(text, beat), text);
}

TEST_CASE("a process is alive while its card changes, open while it was watched for too short a time") {
  StoredTexts store;
  Roster other = rosterOf("b"), own = rosterOf("a");
  other.write(store);
  struct Look {
    std::chrono::milliseconds time;
    bool writes, alive, open;
  };
  for (const Look& look :
       {Look{0ms, false, false, true}, Look{99ms, false, false, true}, Look{100ms, false, false, false},
        Look{150ms, true, true, false}, Look{249ms, false, true, false}, Look{250ms, false, false, false}}) {
    CAPTURE(look.time.count());
    if (look.writes) other.write(store);
    own.refresh(store, at(look.time));
    CHECK(own.isAlive("b") == look.alive);
    CHECK(own.anyAlive() == look.alive);
    CHECK(own.isOpen("b") == look.open);
    CHECK(own.anyOpen() == look.open);
    CHECK(own.dead() == (look.alive || look.open ? Names{} : Names{"b"}));
    CHECK(own.isAlive("a"));
    CHECK_FALSE(own.isAlive("c"));
  }
  own.forget();
  CHECK_FALSE(own.isOpen("b"));
}

TEST_CASE("members of the last generation come first in their order, newcomers last") {
  StoredTexts store;
  Roster own = rosterOf("m"), second = rosterOf("k"), newcomer = rosterOf("a"), busy = rosterOf("z"),
         stranger = rosterOf("s", "other options");
  for (Roster* one : {&own, &second, &busy}) one->own().from = 4;
  for (Roster* one : {&own, &second, &newcomer, &stranger}) one->own().ready = true;
  for (int beat = 0; beat < 2; ++beat) {
    for (Roster* one : {&second, &newcomer, &stranger}) one->write(store);
    own.refresh(store, at(beat * 50ms));
  }
  const Names before{"m", "z", "k"};
  bool more = false;
  CHECK(own.ready(before, more) == Names{"m", "k", "a"});
  CHECK_FALSE(more);
  CHECK(own.count() == 3);
  CHECK(own.anyTrains());
  CHECK(own.anyJoins(before));
  CHECK_FALSE(own.anyJoins({"m", "k", "a"}));
  busy.write(store);  // not ready yet
  own.refresh(store, at(60ms));
  CHECK(own.ready(before, more) == Names{"m", "k", "a"});
  CHECK(more);
}

TEST_CASE("two processes are apart if both lost each other in the same generation") {
  struct Case {
    std::int64_t one, other;
    bool apart;
  };
  for (const Case& c : {Case{3, 3, true}, Case{3, 2, false}, Case{3, 0, false}, Case{0, 0, false}}) {
    CAPTURE(c.one);
    CAPTURE(c.other);
    StoredTexts store;
    Roster own = rosterOf("a"), other = rosterOf("b");
    if (c.one > 0) own.own().lost["b"] = c.one;
    if (c.other > 0) other.own().lost["a"] = c.other;
    other.write(store);
    own.refresh(store, at(0ms));
    CHECK(own.areApart("a", "b") == c.apart);
    CHECK(own.areApart("b", "a") == c.apart);
  }
}

TEST_CASE("of two processes that are apart this one, or the first, is in the generation") {
  StoredTexts store;
  Roster own = rosterOf("m"), a = rosterOf("a"), b = rosterOf("b"), c = rosterOf("c");
  // m and b are apart, and so are a and c.
  own.own().lost["b"] = b.own().lost["m"] = 3;
  a.own().lost["c"] = c.own().lost["a"] = 4;
  for (Roster* one : {&a, &b, &c}) one->write(store);
  own.refresh(store, at(0ms));
  CHECK(own.together({"b", "a", "m", "c"}) == Names{"a", "m"});
  CHECK(own.together({"c", "m"}) == Names{"c", "m"});
  CHECK(own.together({"m"}) == Names{"m"});
}
