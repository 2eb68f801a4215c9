#include "muster/parallel/nodes/elastic/member_list.h"

#include "tests/parallel/nodes/stored_texts.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;
using Names = std::vector<std::string>;

TEST_CASE("a list is read as it was written; other texts are no lists") {
  for (const MemberList& list : {MemberList{{"a", "b"}, "workers: 2\nthreads: 1\n"}, MemberList{}}) {
    const auto read = MemberList::parse(list.text());
    REQUIRE(read);
    CHECK(read->members == list.members);
    CHECK(read->common == list.common);
  }
  for (const char* const text : {"", "hello", "muster-elastic-1 1\na\n", "muster-elastic-2"})
    CHECK_FALSE_MESSAGE(MemberList::parse(text), text);
}

TEST_CASE("a generation has one list") {
  StoredTexts store;
  CHECK_FALSE(MemberList::of(store, 3));
  CHECK(MemberList{{"a"}, ""}.create(store, 3));
  CHECK_FALSE(MemberList{{"b"}, ""}.create(store, 3));
  CHECK(MemberList::of(store, 3)->members == Names{"a"});
  CHECK_FALSE(MemberList::of(store, 2));
}

TEST_CASE("a process with other options is told the first line that differs") {
  struct Row {
    const char *own, *other, *first;
  };
  const MemberList list{{"a"}, "workers: 2\nthreads: 1\n"};
  list.requireCommon(list.common);
  for (const Row& row :
       {Row{"workers: 2\nthreads: 4\n", "threads: 1", "threads: 4"},
        Row{"workers: 3\nthreads: 4\n", "workers: 2", "workers: 3"}, Row{"workers: 2\n", "threads: 1", ""},
        Row{"", "workers: 2", ""}, Row{"workers: 2\nthreads: 1\nmore\n", "", "more"}})
    CHECK_REFUSED(list.requireCommon(row.own),
                  fmt::format("nodes: the processes that train have \"{}\", and this one has \"{}\"",
                              row.other, row.first));
}

TEST_CASE("texts of generations are found by number; cards are none") {
  StoredTexts store;
  CHECK(elastic::latestLease(store) == 0);
  for (const char* const name :
       {"lease-2", "lease-10", "members-2", "rendezvous-2-0", "rendezvous-10-0", "member-a", "lease-x"})
    store.put(name, "text");
  CHECK(elastic::latestLease(store) == 10);
  CHECK(elastic::generationTexts(store, 10) == Names{"lease-2", "lease-x", "members-2", "rendezvous-2-0"});
  CHECK(elastic::generationTexts(store).size() == 6);
}
