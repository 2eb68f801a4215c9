// Which processes train together, agreed through a directory: several members in this process, without a
// network.

#include <sstream>

#include "muster/parallel/nodes/elastic/directory_store.h"
#include "muster/parallel/nodes/elastic/membership.h"
#include "muster/parallel/nodes/node_transport.h"
#include "tests/parallel/nodes/stored_texts.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

bool never() {
  return false;
}

struct Member {
  Member(const std::filesystem::path& directory, int least, std::chrono::milliseconds patience = 60s,
         std::string common = "alike\n")
      : store(directory),
        membership(store,
                   {.minNodes = least, .silence = 2s, .patience = patience, .common = std::move(common)}) {}
  Generation next() { return *membership.next(never); }
  /// Calls next() in a new thread.
  std::future<Generation> comes() {
    return std::async(std::launch::async, [this] { return next(); });
  }

  DirectoryStore store;
  Membership membership;
};

}  // namespace

TEST_CASE("only one of several create() calls succeeds, and put() replaces a whole text") {
  const TemporaryDirectory folder;
  DirectoryStore a(folder / "new" / "store"), b(folder / "new" / "store");
  checkStore(a, b);
  CHECK(namesIn(folder / "new" / "store") == std::set<std::string>{"one"});
  writeFile(folder / "file", "x");
  CHECK_CONTAINS(thrown<NodeFailure>([&] { DirectoryStore(folder / "file"); }), "is not a directory");
}

TEST_CASE("a text that cannot be read is an error with its path and cause, not a text that is missing") {
  const TemporaryDirectory folder;
  DirectoryStore store(folder.path());
  CHECK(store.get("none") == "");
  std::filesystem::create_directory(folder / "card");
  CHECK(thrown<NodeFailure>([&] { store.get("card"); }) ==
        fmt::format("the store: {} cannot be read: Is a directory", (folder / "card").string()));
  CHECK(thrown<NodeFailure>([&] { store.put("card", "x"); }) ==
        fmt::format("the store: {} cannot be written: Is a directory", (folder / "card").string()));
  CHECK(thrown<NodeFailure>([&] { store.put("none/card", "x"); }).ends_with(": No such file or directory"));
  writeFile(folder / "long", std::string(NodeStore::kMostBytes, 'x'));
  CHECK(store.get("long") == "");
  CHECK(store.names("").size() == 2);
}

TEST_CASE("if too few processes have come, one of them still writes the results") {
  const TemporaryDirectory folder;
  Member a(folder.path(), 3, 3s), b(folder.path(), 3, 3s);
  auto other = std::async(std::launch::async, [&] { return thrown<NodeFailure>([&] { b.next(); }); });
  CHECK_CONTAINS(thrown<NodeFailure>([&] { a.next(); }), "of at least 3 nodes");
  CHECK(other.get() != "");
  CHECK((a.membership.place() == 0 || b.membership.place() == 0));
}

TEST_CASE("if all processes lose the store, the first of the last generation writes the results") {
  const TemporaryDirectory folder;
  Member a(folder / "store", 2), b(folder / "store", 2);
  auto bs = b.comes();
  const Generation as = a.next();
  bs.get();
  Member late(folder / "store", 2);
  std::filesystem::rename(folder / "store", folder / "elsewhere");
  for (auto* one : {&a, &b, &late}) CHECK_CONTAINS(thrown<NodeFailure>([&] { one->next(); }), "store");
  CHECK(a.membership.place() == as.node);
  CHECK(b.membership.place() == 1 - as.node);
  CHECK(late.membership.place() > 0);  // others may train
}

TEST_CASE("processes that join agree on one list, and keep their places when one leaves and one joins") {
  const TemporaryDirectory folder;
  std::vector<std::unique_ptr<Member>> all;
  for (int i = 0; i < 3; ++i) all.push_back(std::make_unique<Member>(folder.path(), 2));
  const auto together = [&] {
    std::vector<std::future<Generation>> coming;
    for (const auto& one : all) coming.push_back(one->comes());
    std::vector<Generation> generations;
    for (auto& one : coming) generations.push_back(one.get());
    for (std::size_t i = 0; i < all.size(); ++i) {
      CHECK(generations[i].number == generations[0].number);
      CHECK(generations[i].members == generations[0].members);
      CHECK(generations[i].members.at(static_cast<std::size_t>(generations[i].node)) ==
            all[i]->membership.process());
    }
    return generations[0];
  };
  const auto before = together();
  REQUIRE(before.members.size() == 3);
  std::erase_if(all, [&](const auto& one) { return one->membership.process() == before.members[1]; });
  all.insert(all.begin(), std::make_unique<Member>(folder.path(), 2));
  const auto after = together();
  CHECK(after.number > before.number);
  CHECK(after.members ==
        std::vector{before.members[0], before.members[2], all.front()->membership.process()});
  all.clear();
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("texts that killed processes left incomplete are erased with the complete ones") {
  const TemporaryDirectory folder;
  DirectoryStore store(folder.path());
  for (const auto* name : {"member-dead.0011-1.part", "lease-1.0011-2.part", "members-1.0011-3.part",
                           "rendezvous-1-0.0011-4.part", "other"})
    writeFile(folder / name, "x");
  {
    Member only(folder.path(), 1);
    only.next();
    CHECK(std::filesystem::exists(folder / "member-dead.0011-1.part"));  // its process may be writing it
  }
  CHECK(std::filesystem::exists(folder / "other"));
  std::filesystem::remove(folder / "other");
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("a text is written although another process erases incomplete ones") {
  const TemporaryDirectory folder;
  DirectoryStore store(folder.path()), other(folder.path());
  const std::jthread erases([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) other.eraseAll("card.");
  });
  for (int i = 0; i < 300; ++i) {
    store.put("card", std::to_string(i));
    CHECK(store.get("card") == std::to_string(i));
    CHECK(store.create("card" + std::to_string(i), "x"));
  }
}

TEST_CASE("a member whose card is written late does not join again") {
  /// Writes cards of members only after this time.
  struct Late final : NodeStore {
    explicit Late(const std::filesystem::path& directory) : store(directory) {}
    std::string describe() const override { return store.describe(); }
    void put(const std::string& name, const std::string& text) override {
      std::istringstream words(text);
      std::string magic, beat, common;
      std::int64_t from = 0;
      words >> magic >> beat >> common >> from;
      if (from > 0) std::this_thread::sleep_for(700ms);
      store.put(name, text);
    }
    bool create(const std::string& name, const std::string& text) override {
      return store.create(name, text);
    }
    std::string get(const std::string& name) override { return store.get(name); }
    void erase(const std::string& name) override { store.erase(name); }
    std::vector<std::string> names(const std::string& prefix) override { return store.names(prefix); }
    DirectoryStore store;
  };
  const TemporaryDirectory folder;
  Member a(folder.path(), 1);
  a.next();
  Late late(folder.path());
  Membership b(late, {.minNodes = 1, .silence = 2s, .patience = 60s, .common = "alike\n"});
  auto bs = std::async(std::launch::async, [&] { return *b.next(never); });
  while (!a.membership.joinRequested()) std::this_thread::sleep_for(5ms);
  CHECK(a.next().members.size() == 2);
  // 200 ms between looks.
  for (int i = 0; i < 120; ++i, std::this_thread::sleep_for(5ms)) REQUIRE_FALSE(a.membership.joinRequested());
  CHECK(bs.get().members.size() == 2);
}

TEST_CASE("after a network partition one side continues, and the other ends") {
  const TemporaryDirectory folder;
  Member a(folder.path(), 2), b(folder.path(), 2), c(folder.path(), 2), d(folder.path(), 2);
  Member* const all[] = {&a, &b, &c, &d};
  {
    auto as = a.comes(), bs = b.comes(), cs = c.comes(), ds = d.comes();
    CHECK(as.get().members.size() == 4);
    bs.get(), cs.get(), ds.get();
  }
  // a and b are on one side of the network partition.
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j)
      if (i / 2 != j / 2) all[i]->membership.lost(all[j]->membership.process());
  std::vector<std::future<Generation>> next;
  for (auto* m : all) next.push_back(m->comes());
  int going = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const auto problem = thrown<NodeFailure>([&] {
      auto members = next[i].get().members;
      std::vector pair{all[i]->membership.process(), all[i ^ 1U]->membership.process()};
      std::ranges::sort(members);
      std::ranges::sort(pair);
      CHECK(members == pair);
      ++going;
    });
    if (problem.empty()) continue;
    CHECK(problem.starts_with("the other nodes continue without this one"));
    CHECK(all[i]->membership.place() > 0);
  }
  CHECK(going == 2);
}

TEST_CASE("a side with too few processes leaves the lease to the other side") {
  const TemporaryDirectory folder;
  Member a(folder.path(), 2), b(folder.path(), 2), c(folder.path(), 2);
  {
    auto as = a.comes(), bs = b.comes(), cs = c.comes();
    as.get(), bs.get(), cs.get();
  }
  for (auto* other : {&a, &b}) {
    other->membership.lost(c.membership.process());
    c.membership.lost(other->membership.process());
  }
  auto alone = c.comes();  // first
  std::this_thread::sleep_for(200ms);
  auto as = a.comes(), bs = b.comes();
  CHECK(as.get().members.size() == 2);
  CHECK(bs.get().members.size() == 2);
  CHECK(thrown<NodeFailure>([&] { alone.get(); }).starts_with("the other nodes continue without this one"));
  CHECK(c.membership.place() > 0);
}

TEST_CASE("a process with other options is refused, and the others train") {
  const TemporaryDirectory folder;
  Member a(folder.path(), 1);
  CHECK(a.next().members.size() == 1);
  Member other(folder.path(), 1, 60s, "another model\n");
  CHECK_REFUSED(other.next(),
                "nodes: the processes that train have \"alike\", and this one has \"another model\"");
  CHECK_FALSE(a.membership.joinRequested());
}

TEST_CASE("entries of dead processes have no effect, and are removed") {
  const TemporaryDirectory folder;
  writeFile(folder / "member-00000000000000aa", "muster-elastic-2 7 0011223344556677 3 0");
  writeFile(folder / "lease-3", "00000000000000aa");
  writeFile(folder / "members-3", "muster-elastic-2 1\n00000000000000aa\nother options\n");
  writeFile(folder / "rendezvous-3-node-0", "x");
  writeFile(folder / "member-garbage", "\x01\x02 garbage");
  {
    Member a(folder.path(), 1);
    const auto generation = a.next();
    CHECK(generation.number == 4);
    CHECK(generation.members == std::vector{a.membership.process()});
    CHECK_FALSE(std::filesystem::exists(folder / "member-00000000000000aa"));
    CHECK_FALSE(std::filesystem::exists(folder / "members-3"));
    CHECK_FALSE(std::filesystem::exists(folder / "rendezvous-3-node-0"));
  }
  // Nor is it misled by a process that died while it held the lease.
  writeFile(folder / "lease-9", "00000000000000bb");
  Member b(folder.path(), 1);
  CHECK(b.next().number == 10);
}

TEST_CASE("a wait ends when it is stopped or times out") {
  const TemporaryDirectory folder;
  {
    Member a(folder.path(), 2, 100ms);
    CHECK(thrown<NodeFailure>([&] { a.next(); }) ==
          fmt::format("only 1 of at least 2 nodes has joined {} in 0.1 s", folder.path().string()));
    CHECK_FALSE(a.membership.next([] { return true; }).has_value());
  }
  CHECK(std::filesystem::is_empty(folder.path()));
}
