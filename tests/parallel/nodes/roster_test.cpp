#include "muster/parallel/nodes/elastic/roster.h"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "muster/parallel/nodes/elastic/names.h"

using namespace muster;
using namespace std::chrono_literals;
using Names = std::vector<std::string>;

namespace {

class Texts final : public NodeStore {
 public:
  std::string describe() const override { return "a map"; }
  void put(const std::string& name, const std::string& text) override { texts_[name] = text; }
  bool create(const std::string& name, const std::string& text) override {
    return texts_.emplace(name, text).second;
  }
  std::string get(const std::string& name) override {
    const auto found = texts_.find(name);
    return found == texts_.end() ? std::string() : found->second;
  }
  void erase(const std::string& name) override { texts_.erase(name); }
  Names names(const std::string& prefix) override {
    Names all;
    for (const auto& [name, text] : texts_)
      if (name.starts_with(prefix)) all.push_back(name);
    return all;
  }

 private:
  std::map<std::string, std::string> texts_;
};

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
  for (const char* const text : {"", "hello", "muster-elastic-1 1 abc 0 1", "muster-elastic-2 1 abc"}) {
    CAPTURE(text);
    CHECK_FALSE(MemberCard::parse(text, beat));
  }
}

TEST_CASE("a process is alive while its card changes, open while it was watched for too short a time") {
  Texts store;
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
    own.look(store, at(look.time));
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
  Texts store;
  Roster own = rosterOf("m"), second = rosterOf("k"), newcomer = rosterOf("a"), busy = rosterOf("z"),
         stranger = rosterOf("s", "other options");
  for (Roster* one : {&own, &second, &busy}) one->own().from = 4;
  for (Roster* one : {&own, &second, &newcomer, &stranger}) one->own().ready = true;
  for (int beat = 0; beat < 2; ++beat) {
    for (Roster* one : {&second, &newcomer, &stranger}) one->write(store);
    own.look(store, at(beat * 50ms));
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
  own.look(store, at(60ms));
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
    Texts store;
    Roster own = rosterOf("a"), other = rosterOf("b");
    if (c.one > 0) own.own().lost["b"] = c.one;
    if (c.other > 0) other.own().lost["a"] = c.other;
    other.write(store);
    own.look(store, at(0ms));
    CHECK(own.areApart("a", "b") == c.apart);
    CHECK(own.areApart("b", "a") == c.apart);
  }
}
