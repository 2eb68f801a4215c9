#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "muster/parallel/elastic/node_store.h"

namespace muster {

/// Connects the nodes of a training through a shared store. Each node writes one small text with a random
/// number; node 0 writes a second text with the numbers of all. The training begins when every node has found
/// its own number there, so texts of earlier runs mislead no node. All are removed once the nodes are
/// connected.
class Rendezvous {
 public:
  /// The address on which a node listens for another node, in the transport's own format.
  using Address = std::vector<char>;

  /// @param prefix  of the texts' names, since several trainings may share a store.
  Rendezvous(NodeStore& store, std::string prefix, int node, int nodes);
  /// Removes this node's texts.
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  /// Waits until all nodes have joined.
  /// @param own  [node] where this node listens for that node. All nodes have addresses of one size.
  /// @return  [node] where that node listens for this one; empty for this node.
  /// @throws NodeFailure naming the nodes that have not joined in this time, and what in their texts does not
  /// fit.
  std::vector<Address> awaitAll(std::span<const Address> own, std::chrono::milliseconds patience);

 private:
  struct Card {  // the text of a node
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
