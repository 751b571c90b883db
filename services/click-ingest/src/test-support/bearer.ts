/** What stands in the `Authorization` field of a caller who knows a secret. */
export const bearer = (secret: string) => `Bearer ${secret}`;
