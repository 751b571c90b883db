import type { Database } from "@linkfence/db";

export type InstanceRegistration = { id: string; address: string; ttlMs: number; followsFeed: boolean };

/** Enters a process into the registry; committed when it resolves, and harmless to repeat. Throws the database's error. */
export async function registerInstance(database: Database, registration: InstanceRegistration): Promise<void> {
  const { id, address, ttlMs, followsFeed } = registration;
  await database.run((sql) => sql`SELECT register_instance(${id}::uuid, ${address}, ${ttlMs}, ${followsFeed})`);
}

/** Takes a process out of the registry, after it has stopped serving. */
export async function deregisterInstance(database: Database, id: string): Promise<void> {
  await database.run((sql) => sql`SELECT deregister_instance(${id}::uuid)`);
}
