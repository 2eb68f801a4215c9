#pragma once

#include <chrono>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace muster {

/// A directory that all nodes of a training share, where they find each other. Each writes one small file,
/// with a number that it has drawn; node 0 writes a second one with the numbers of all. The training begins
/// when every node has seen its own number there, so files that earlier runs have left mislead no node. They
/// are removed when all are connected.
class MeetingPoint {
 public:
  /// Where a node listens for another one: bytes that only the transport understands.
  using Address = std::vector<char>;

  /// @param directory  is made if it is not there. @throws InvalidArgument, NodeFailure if it cannot be
  /// written.
  MeetingPoint(std::filesystem::path directory, int node, int nodes);
  /// Removes this node's files.
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

  std::filesystem::path cardPath(int node) const;
  std::filesystem::path sessionPath() const;
  void write(const std::filesystem::path& path, const std::string& text) const;
  std::string read(const std::filesystem::path& path) const;
  void writeCard();
  Card readCard(int node) const;
  void writeSession() const;
  Session readSession() const;
  bool convene();
  bool join();
  std::string absent() const;

  const std::filesystem::path directory_;
  const int node_, nodes_;
  std::size_t addressSize_ = 0;
  Card card_;
  Session session_;
};

}  // namespace muster
