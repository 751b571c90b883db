export function startTestServer(settings: Record<string, string>): Promise<{ stop(): Promise<void> }>;
