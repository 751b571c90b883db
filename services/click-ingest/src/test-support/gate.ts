/** A place that work comes to and waits at, until it is let through. */
export function createGate() {
  let [arrive, letThrough] = [() => {}, () => {}];
  const reached = new Promise<void>((resolve) => {
    arrive = resolve;
  });
  const opened = new Promise<void>((resolve) => {
    letThrough = resolve;
  });
  let isOpen = false;
  return {
    /** For whoever comes to it: a promise to wait for, until the gate is open. */
    pass(): Promise<void> | undefined {
      arrive();
      return isOpen ? undefined : opened;
    },
    /** Resolves once somebody waits there. */
    reached,
    open(): void {
      isOpen = true;
      letThrough();
    },
  };
}
