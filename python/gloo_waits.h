// Frees threads that wait in torch's gloo for a message under way when its connection breaks.
//
// gloo tells the waiters of messages that have not begun that their connection is gone, but forgets those whose message
// is partly sent or received: they sit there until the group's time-out, half an hour. So every wait is noted here, and
// when the group is broken each waiting buffer is told of an error, by gloo's own function for it.
#pragma once

namespace holdfast::python {

class GlooWaits {
 public:
  /// Notes all waits from here on. False where no gloo is loaded, or not one that this knows how to follow: then waits
  /// are as gloo made them. Calls after the first do nothing. Takes no lock that a waiter holds.
  static bool install();
  /// A new group is about to be made: its waits are good.
  static void group_begin();
  /// The group is broken: every wait ends with an exception, those to come too, until `group_begin`. Any thread.
  static void group_broken();
};

}  // namespace holdfast::python
