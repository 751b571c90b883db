import type { TestDatabase } from "@linkfence/testkit";

/** Has the database refuse clicks on the code `banned`, and those last that have been stored already when it does. */
export async function refuseBanned({ sql }: Pick<TestDatabase, "sql">): Promise<void> {
  await sql.unsafe(`
    CREATE FUNCTION refuse_banned() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN IF NEW.code = 'banned' THEN RAISE EXCEPTION 'banned'; END IF; RETURN NEW; END $$;
    CREATE TRIGGER refuse_banned BEFORE INSERT ON click_hour FOR EACH ROW EXECUTE FUNCTION refuse_banned();`);
}
