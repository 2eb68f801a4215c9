#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "muster/parallel/elastic/node_store.h"

namespace muster {

/// A directory that all nodes of a training share, where they find each other. Each writes one small file,
/// with a number that it has drawn; node 0 writes a second one with the numbers of all. The training begins
/// when every node has seen its own number there, so files that earlier runs have left mislead no node. They
/// are removed when all are connected.
class MeetingPoint {
 public:
  /// Where a node listens for another one: bytes that only the transport understands.
  using Address = std::vector<char>;

  /// @param prefix  of the names of the texts, as several meetings may share a store.
  MeetingPoint(NodeStore& store, std::string prefix, int node, int nodes);
  /// Removes this node's texts.
  ~MeetingPoint();
  MeetingPoint(const MeetingPoint&) = delete;
  MeetingPoint& operator=(const MeetingPoint&) = delete;

  /// Waits until all are there.
  /// @param own  [node] where this node listens for that one. All nodes have addresses of one size.
  /// @return  [node] where that node listens for this one; empty for this one.
  /// @throws NodeFailure naming those that have not come in this time, and what they say where that does not
  /// fit.
  std::vector<Address> meet(std::span<const Address> own, std::chrono::milliseconds patience);

 private:
  struct Card {  // what a node has written
    std::string number, session;
    int nodes = 0;
    std::vector<Address> addresses;
  };
  struct Session {
    std::string name;
    bool complete = false;
    std::vector<std::string> numbers;  // [node]
  };

  std::string cardName(int node) const;
  std::string sessionName() const;
  void writeCard();
  Card readCard(int node) const;
  void writeSession() const;
  Session readSession() const;
  bool convene();
  bool join();
  std::string absent() const;

  NodeStore& store_;
  const std::string prefix_;
  const int node_, nodes_;
  std::size_t addressSize_ = 0;
  Card card_;
  Session session_;
};

}  // namespace muster
